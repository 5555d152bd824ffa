"""What is the answer of this run, and where does it lead?"""
