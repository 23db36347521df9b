"""What trained models of several families do with one test set: tables, plots and heat maps on a page."""
