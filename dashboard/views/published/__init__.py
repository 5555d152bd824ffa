"""What did the reports measure, and what does the same work take here?"""

from warpladder.dashboard.ui.view import View

VIEW = View("published", "Published", "What did the reports measure, and what does the same work take here?")
