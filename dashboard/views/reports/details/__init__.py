"""What do the reports' own tables look like here?"""
