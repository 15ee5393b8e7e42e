"""Planted near misses: of 200 and more defects, one each, the reasons name nearly all."""

import onnx

import onnxlab
from onnxlab.transforms import verification
from onnxlab.transforms.rules import built_in_rules
from onnxlab.transforms.rules.rule import Rule
from tests.support.defects import defects, named
from tests.support.regions import region
from tests.transforms.test_standard_rules import EXAMPLES, proto_of


def test_reasons_name_the_defect() -> None:
    total, missed = 0, []
    for rule in built_in_rules.STANDARD:
        if not isinstance(rule, Rule):
            continue
        for defect in defects(proto_of(EXAMPLES[rule.name]), rule):
            total += 1
            reason = named(defect, rule)
            if reason:
                missed.append(f"{rule.name}: {defect.what}: {defect.words}: {reason}")
    assert total >= 200
    assert len(missed) <= 0.05 * total, "\n".join(missed)


def test_random_regions_compute_the_same() -> None:
    for seed in range(12):
        proto = region(seed)
        before = onnxlab.load(onnx.ModelProto.FromString(proto.SerializeToString()))
        model = onnxlab.load(proto)
        cases = verification.cases(before.run, [before.sample_inputs(seed=seed)])
        model.optimize("layout", microsoft=True, verify=False)
        judged = verification.judge(model.run, cases)
        assert judged.verdict in ("bit equal", "equal within noise"), (seed, judged)
