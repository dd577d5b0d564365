"""The tests: unit and page tests here, browser tests in browser/, benchmarks in benchmarks/."""
