"""The experiment lab: grids of simulated runs, their results on disk, tables and figures.

An experiment is a TOML file (`experiment`); `grid` makes runs of it, each with a key;
`runner` gives those that are not in the `store` yet to a process pool or a Dask cluster;
`analyse` and `report` read the store again. docs/experiments.md is the manual.
"""
