"""The account of an answer: what was asked, checked, found, and how far the answer stands, told from a recording alone.

`account.account_for_answer` gives the seven rows, `assess.assess_turn` the one word. Both are pure: the same recording gives the same bytes, on every machine.
A sentence is filled into a fixed template; who vouches for it is the weakest of all that it rests on. Where the record is silent, it says so.
"""
