"""What do the words of these pages mean?"""

from warpladder.dashboard.ui.view import View

VIEW = View("glossary", "Glossary", "What do the words of these pages mean?")
