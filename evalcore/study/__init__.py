"""What a study is: its words, tables and triggers, its people and rules, the trail, and what is read and written of all of it."""
