"""What ran when, on which stream and thread?"""
