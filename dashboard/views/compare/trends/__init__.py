"""When did a variant become faster or slower, by how much, and what changed then?"""
