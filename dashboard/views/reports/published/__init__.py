"""What did the reports measure, and what does the same work take here?"""
