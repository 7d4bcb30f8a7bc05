"""The flat result keys, made in one place for daemons, simulator and whoever joins them."""
