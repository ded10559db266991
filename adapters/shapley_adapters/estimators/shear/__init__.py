"""SHEAR: stratified draws around the cooperators of each player."""
