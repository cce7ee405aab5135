"""BiVLC."""
