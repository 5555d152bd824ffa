"""How fast do the ranks transfer, and how long do they wait for each other?"""
