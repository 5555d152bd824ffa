"""What would a step of the program gain from faster operations?"""
