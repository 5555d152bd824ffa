"""Did my change make it faster, where, and by how much?"""
