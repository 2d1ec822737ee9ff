"""Whole answers: what the answerer makes of the evidence that it is given.

`arms` says which blocks a question is answered from, `running` asks and keeps what came out,
`outcome` judges one answer by the facts of its case, `causes` says why a wrong one is wrong,
`judged` lets a judge look, `summary` and `report` add up. The chat model's replies are kept by
`cache`, finished answers by `journal`.
"""
