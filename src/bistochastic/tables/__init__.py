"""People's tables: from columns of any kind to points."""
