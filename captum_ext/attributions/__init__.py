"""The attribution methods: each is its options and its estimator."""
