"""What is each kernel compiled to?"""
