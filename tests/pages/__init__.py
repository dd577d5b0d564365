"""Tests of the screens, through Streamlit's AppTest."""
