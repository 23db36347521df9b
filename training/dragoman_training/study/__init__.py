"""What trained models of several families do with the same test set: tables, plots and heat maps on one page."""
