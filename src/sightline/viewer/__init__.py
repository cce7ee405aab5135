"""The viewer: pages of runs, groups and comparisons, the HTML report, pages of annotation projects."""
