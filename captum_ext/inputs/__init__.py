"""Arguments of attribution methods: inputs, baselines, feature masks, further arguments."""
