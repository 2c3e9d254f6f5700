"""What is asked of the methods of an experiment: its data, and the measures of their scores."""
