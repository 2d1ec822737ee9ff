"""Test sets of others -> a collection, or cases for one: `beir`, `trec`, `ragas`.

Enters: a source folder or file and the folder of a collection. Leaves: files in that folder and an
Imported that says what became of every row. Refuses: a source that cannot be read, ids of which
more than a few match nothing, and a target whose files would be overwritten.
"""
