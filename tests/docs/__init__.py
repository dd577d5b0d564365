"""The docs: reference, commands, pictures, and the page that shows them."""
