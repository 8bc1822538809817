"""People's tables: from columns of any kind to points, and the same for new rows."""

from bistochastic.tables.preparation import Preparation
from bistochastic.tables.prepare import PreparedTable, apply_preparation, prepare_table

__all__ = ["Preparation", "PreparedTable", "apply_preparation", "prepare_table"]
