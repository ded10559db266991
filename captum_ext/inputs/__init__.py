"""What users pass to attribution methods: inputs, baselines, feature masks."""
