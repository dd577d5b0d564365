"""What physicians do: assign, read blind, reveal, revise, override, adjudicate; and what is hidden from whom."""
