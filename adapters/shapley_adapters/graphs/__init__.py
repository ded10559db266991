"""Graphs of players: conversion of users' graphs, drawing, and connected sets."""
