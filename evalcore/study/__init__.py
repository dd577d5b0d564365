"""What a study is: its tables, and the triggers that guard them."""
