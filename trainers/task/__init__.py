"""The task of an experiment's methods: its data, and the measures of their scores."""
