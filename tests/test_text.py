"""Losses for rankers of texts: in-batch negatives, and the losses of sentence-transformers.

A tiny encoder stands in for a transformer. Where sentence-transformers is installed, a BERT of two layers with random
weights and a tokenizer of 40 words is trained as well, and values and gradients are those of its losses.
"""

import math
from types import SimpleNamespace

import pytest
import torch
from torch.nn import functional as F

from ltr.losses import SoftmaxLoss, parse_loss
from ltr.text import BiEncoderLoss, CrossEncoderLoss, in_batch

LOSSES = [
    "ranknet",
    "hinge",
    "margin_mse",
    "list_net",
    "kl(temperature=2)",
    "list_mle",
    "softmax",
    "lambda(statistic=dcg@10)",
    "smooth(statistic=dcg@10,temperature=1)",
]
WORDS = [f"w{i}" for i in range(40)]
QUERIES = ["w0 w1", "w2", "w3 w0 w4"]
LISTS = [["w5 w6", "w7", "w8 w9 w10", "w1"], ["w11 w12", "w3"], ["w2 w2", "w5", "w13"]]
GRADES = [torch.tensor(row) for row in ([2, 0, 1, 3], [0, 1], [1, 2, 0])]
TRIPLETS = QUERIES, ["w5 w6", "w7", "w8"], ["w9", "w10 w11", "w12"]


class Encoder(torch.nn.Module):
    """Scores pairs of texts, or embeds texts, by the mean of the embeddings of their words."""

    device = torch.device("cpu")

    def __init__(self, dropout=0.0):
        super().__init__()
        torch.manual_seed(0)
        self.words, self.dropout = torch.nn.Embedding(len(WORDS) + 1, 8), torch.nn.Dropout(dropout)
        self.head = torch.nn.Linear(8, 1)
        self.double()

    def preprocess(self, texts, prompt=None, task=None):
        whole = [text if isinstance(text, str) else " ".join(text) for text in texts]
        rows = [[int(word[1:]) + 1 for word in text.split()] for text in whole]
        ids = torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True)
        return {"input_ids": ids, "attention_mask": (ids > 0).long(), "modality": "text"}

    def forward(self, tokens):
        there = tokens["attention_mask"].unsqueeze(-1)
        mean = (torch.tanh(self.dropout(self.words(tokens["input_ids"]))) * there).sum(1) / there.sum(1)
        tokens |= {"sentence_embedding": mean, "scores": self.head(mean)}
        return tokens


def features(model, columns=TRIPLETS):
    return [model.preprocess(list(column)) for column in columns]


def value_and_grads(loss, *given):
    """Value, and the gradient of all parameters in one vector."""
    torch.manual_seed(3)
    value = loss(*given)
    parameters = [p for p in loss.model.parameters() if p.requires_grad]
    grads = torch.autograd.grad(value, parameters, allow_unused=True)
    whole = [torch.zeros_like(p) if g is None else g for p, g in zip(parameters, grads, strict=True)]
    return value.detach(), torch.cat([g.flatten() for g in whole])


def same(found, expected, tolerance=1e-12):
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)


# --- negatives of a batch ----------------------------------------------------------------------------------------


def embeddings(queries=5, documents=3, d=4):
    generator = torch.Generator().manual_seed(0)
    return [
        torch.randn(*shape, d, dtype=torch.float64, generator=generator) for shape in ((queries,), (queries, documents))
    ]


def test_in_batch_softmax_is_the_cross_entropy_of_all_documents():
    queries, documents = embeddings()
    scores, labels, mask = in_batch(queries, documents)
    assert mask.all()
    torch.testing.assert_close(scores, torch.einsum("qd,pnd->qpn", queries, documents).flatten(1))
    own = torch.arange(5) * 3  # the first document of each query
    torch.testing.assert_close(SoftmaxLoss()(scores, labels), F.cross_entropy(scores, own))
    graded = torch.arange(15.0).reshape(5, 3)
    expected = torch.zeros(5, 15)
    for query in range(5):
        expected[query, 3 * query : 3 * query + 3] = graded[query]
    assert torch.equal(in_batch(queries, documents, labels=graded)[1], expected)


def test_documents_that_a_query_has_itself_are_no_negatives():
    queries, documents = embeddings(3, 2)
    ids = torch.tensor([[1, 2], [1, 3], [4, 2]])
    mask = in_batch(queries, documents, ids=ids)[2]
    expected = [[1, 1, 0, 1, 1, 0], [0, 1, 1, 1, 1, 1], [1, 0, 1, 1, 1, 1]]
    assert mask.int().tolist() == expected


# --- the adapters ------------------------------------------------------------------------------------------------


def test_a_cross_encoder_loss_is_the_loss_of_its_scores():
    model = Encoder()
    scores = [
        model(model.preprocess([(q, t) for t in texts]))["scores"].view(-1)
        for q, texts in zip(QUERIES, LISTS, strict=True)
    ]
    for name in LOSSES:
        values = [parse_loss(name)(s, y) for s, y in zip(scores, GRADES, strict=True)]
        same([CrossEncoderLoss(model, name)((QUERIES, LISTS), GRADES)], [torch.stack(values).mean()])
    by_column = CrossEncoderLoss(model, "ranknet")(TRIPLETS, None)  # the first candidate is relevant
    lists = [list(texts) for texts in zip(*TRIPLETS[1:], strict=True)]
    same([by_column], [CrossEncoderLoss(model, "ranknet")((QUERIES, lists), [torch.tensor([1, 0])] * 3)])


def test_a_bi_encoder_loss_is_the_loss_of_its_similarities():
    model, labels = Encoder(), torch.tensor([[2, 1], [0, 1], [1, 1]])
    queries, positive, negative = (model(column)["sentence_embedding"] for column in features(model))
    dots = torch.stack([(queries * x).sum(-1) for x in (positive, negative)], 1)
    cosines = torch.stack([F.cosine_similarity(queries, x) for x in (positive, negative)], 1)
    for name in LOSSES:
        dot = BiEncoderLoss(model, name, similarity="dot", scale=3)
        same([dot(features(model), labels)], [parse_loss(name)(3 * dots, labels)])
        same([BiEncoderLoss(model, name)(features(model), labels)], [parse_loss(name)(20 * cosines, labels)])
    all_of_them = BiEncoderLoss(model, "softmax", similarity="dot", in_batch=True)
    scores = queries @ torch.cat([positive, negative]).T
    same([all_of_them(features(model))], [F.cross_entropy(scores, torch.arange(3))])
    log_q = torch.tensor([[0.1, 0.3], [0.4, 0.2], [0.05, 0.5]], dtype=torch.float64).log()
    corrected = BiEncoderLoss(model, "softmax", similarity="dot", scale=1, in_batch=True, log_q=True)
    expected = F.cross_entropy(scores - log_q.T.reshape(-1), torch.arange(3))
    same([corrected(features(model), log_q)], [expected])


@pytest.mark.parametrize("name", [name for name in LOSSES if parse_loss(name).signed])
def test_margins_are_as_good_as_a_teachers_scores(name):
    model = Encoder()
    teacher = torch.tensor([[0.5, -1.0], [-2.0, 0.25], [3.0, 1.0]], dtype=torch.float64)
    margins = teacher[:, :1] - teacher[:, 1:]
    loss = BiEncoderLoss(model, name)
    same([loss(features(model), margins)], [loss(features(model), teacher)])
    same([loss(features(model), margins[:, 0])], [loss(features(model), teacher)])
    loss = CrossEncoderLoss(model, name)
    same([loss(TRIPLETS, margins[:, 0])], [loss(TRIPLETS, list(teacher))])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda m: CrossEncoderLoss(m, "rank_net"), r"did you mean 'ranknet'"),
        (lambda m: CrossEncoderLoss(SimpleNamespace(num_labels=3), "ranknet"), "must have one output"),
        (lambda m: CrossEncoderLoss(m, "ranknet")((QUERIES, LISTS), GRADES[:2]), "one entry per query, 3, got 2"),
        (lambda m: CrossEncoderLoss(m, "ranknet")((QUERIES, LISTS), [GRADES[0]] * 3), "one per candidate, .* got 4"),
        (lambda m: CrossEncoderLoss(m, "softmax")(TRIPLETS, torch.ones(3)), "labels must be >= 0, got -1"),
        (lambda m: CrossEncoderLoss(m, "ranknet")((QUERIES, QUERIES), torch.ones(3)), "several candidates, got 1 each"),
        (lambda m: BiEncoderLoss(m, "ranknet")(features(m)[:2]), "got 1 each: .* or set in_batch=True"),
        (lambda m: BiEncoderLoss(m, "softmax", in_batch=True, log_q=True)(features(m)), "log_q must be False without"),
        (lambda m: BiEncoderLoss(m, "kl")(features(m), torch.ones(3, 4)), "labels must be 2 per query, .* got 4"),
        (lambda m: BiEncoderLoss(m, "kl", in_batch=True)(features(m), torch.ones(3, 1)), "False with a teacher's"),
    ],
)
def test_mistakes_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make(Encoder())


# --- sentence-transformers ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a BERT of two layers of width 32 and its tokenizer."""
    pytest.importorskip("sentence_transformers")
    transformers = pytest.importorskip("transformers")
    path = str(tmp_path_factory.mktemp("bert"))
    vocabulary = {word: at for at, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS])}
    transformers.BertTokenizerFast(vocab=vocabulary).save_pretrained(path)
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    config = transformers.BertConfig(vocab_size=len(vocabulary), max_position_embeddings=32, num_labels=1, **sizes)
    config.initializer_range = 0.3  # scores that differ
    transformers.BertForSequenceClassification(config).save_pretrained(path)
    return path


@pytest.fixture
def cross_encoder(folder):
    from sentence_transformers import CrossEncoder

    return CrossEncoder(folder, device="cpu").eval()


@pytest.fixture
def bi_encoder(folder):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    return SentenceTransformer(modules=[Transformer(folder), Pooling(32)], device="cpu").eval()


EQUAL = [["w5 w6", "w7", "w8 w9 w10", "w1"], ["w11 w12", "w3", "w20", "w21 w0"], ["w2 w2", "w5", "w13", "w30"]]
BITS = 1 / math.log(2)  # their logarithms are of base 2
ORDERS = [torch.tensor(row) for row in ([2, 0, 1, 3], [0, 1, 3, 2], [3, 2, 0, 1])]  # 6 pairs each


@pytest.mark.parametrize(
    ("name", "theirs", "factor"),
    [
        ("list_net", lambda m, its: its.ListNetLoss(m), 1),
        ("list_mle(pairs=sum)", lambda m, its: its.ListMLELoss(m, respect_input_order=False), 1),
        ("ranknet", lambda m, its: its.RankNetLoss(m), BITS),
        # the mean over the pairs of what is a sum here
        ("lambda(statistic=dcg)", lambda m, its: its.LambdaLoss(m, weighting_scheme=its.LambdaRankScheme()), BITS / 6),
    ],
)
def test_listwise_losses_are_those_of_sentence_transformers(name, theirs, factor, cross_encoder):
    from sentence_transformers.cross_encoder import losses as its

    value, grads = value_and_grads(CrossEncoderLoss(cross_encoder, name), (QUERIES, EQUAL), ORDERS)
    same([factor * value, factor * grads], value_and_grads(theirs(cross_encoder, its), (QUERIES, EQUAL), ORDERS), 1e-4)


def test_distillation_and_in_batch_negatives_are_those_of_sentence_transformers(cross_encoder, bi_encoder):
    from sentence_transformers.cross_encoder import losses as of_pairs
    from sentence_transformers.sentence_transformer import losses as its

    margins = torch.tensor([1.5, -0.25, 3.0])
    found = value_and_grads(CrossEncoderLoss(cross_encoder, "margin_mse"), TRIPLETS, margins)
    same(found, value_and_grads(of_pairs.MarginMSELoss(cross_encoder), TRIPLETS, margins), 1e-4)
    teacher = torch.tensor([[3.0, -1.0, 0.5], [-2.0, -2.5, 0.0], [1.0, 4.0, -3.0]])
    columns = [*TRIPLETS, ["w1", "w2 w3", "w4"]]
    dot = {"similarity": "dot"}
    for name, options, other, given, labels in (
        ("margin_mse", dot, its.MarginMSELoss(bi_encoder), TRIPLETS, margins),
        ("kl(temperature=2)", dot, its.DistillKLDivLoss(bi_encoder, temperature=2.0), columns, teacher),
        ("softmax", {"in_batch": True}, its.MultipleNegativesRankingLoss(bi_encoder), columns, None),
    ):
        found = value_and_grads(BiEncoderLoss(bi_encoder, name, **options), features(bi_encoder, given), labels)
        same(found, value_and_grads(other, features(bi_encoder, given), labels), 1e-4)
