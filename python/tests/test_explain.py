import strobe


def test_says_who_computes_and_why(draw):
    q = draw(2, 37, 4, 32)
    chosen = strobe.explain(q, q, q, causal=True)
    assert (chosen.implementation, chosen.device) == ("flash", "cpu")
    assert chosen.problem == "b2 sq37 h4 d32 fp32 causal"
    assert chosen.tuning["isa"] == strobe.info()["isa"]
    assert chosen.passed_over == {}
    assert "flash" in str(chosen)


def test_says_who_was_passed_over(draw):
    q = draw(1, 8, 1, 8)
    asked = strobe.explain(q, q, q, backward=True, implementation="oracle")
    assert asked.implementation == "oracle" and asked.problem.endswith("bwd")
    assert list(asked.passed_over) == ["flash", "standard"]
    assert "flash was not asked for" in str(asked)


def test_lists_what_there_is():
    names = list(strobe.implementations())
    assert names[0] == "flash" and {"oracle", "standard", "cuda:flash"} <= set(names)
    assert strobe.__version__ == strobe.info()["version"]
