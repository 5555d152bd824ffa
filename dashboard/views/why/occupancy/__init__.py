"""What limits the resident warps, and what would another choice give?"""
