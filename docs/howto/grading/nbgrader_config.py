# SPDX-License-Identifier: MIT
# Of the course's folder. nbgrader ends a cell after 30 s; a grade is some ten runs, each of which may take 20 s.
c = get_config()  # noqa: F821 (nbgrader's own)
c.CourseDirectory.course_id = "course"
c.Execute.timeout = 600
