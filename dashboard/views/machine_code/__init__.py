"""What did the compiler make of each kernel?"""
