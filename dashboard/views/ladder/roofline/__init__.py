"""How near is each variant to what memory or arithmetic allows?"""
