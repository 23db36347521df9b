"""Models that others publish: found in their registries, downloaded, and made bundles of."""
