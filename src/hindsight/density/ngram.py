"""N-grams: the probability of each word given the ones before ("I sat on a chair" against "I fat on a chair")."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..certificates.certificate import Assumption
from ..certificates.theorems import PREDICTIVE, Theorem
from ..errors import RowError
from ..storage.fields import is_count, is_number
from ..storage.registry import want
from ..validation import choice
from .certificate import DensityCertificate, judge, note_of_shards
from .online import OnlineDensity, storable_density, total_shards

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

UNKNOWN, END, START = "<unk>", "</s>", "<s>"
SMOOTHINGS = ("interpolate", "back-off")
LONGEST = 100  # the largest order: probabilities go from each history to the shorter ones


@storable_density
class NGram(OnlineDensity):
    """N-gram model: words given the `order` − 1 words before them, with absolute discounting.

    With ``smoothing="interpolate"``, p(w | h) = max(c − D, 0)/C + D·(distinct words after h)/C · p(w | shorter h) for
    every word w, where D is the discount, c the count of w after the history h and C the sum of those counts. With
    ``"back-off"`` the shorter history is used only for words not seen after h, scaled to the discounted mass. The
    shortest level, below single words, is the uniform distribution over the vocabulary: the words declared or seen so
    far, the unknown word and the end of the sentence. Probabilities therefore sum to 1 over the vocabulary. A word that
    is not in it is predicted as the unknown word and then added to it, unless the vocabulary was declared.

    Rows are sentences: strings, which are split at white space, or lists of words. The loss is summed sentence by
    sentence; for merged models it is the sum of the losses of both.

    Parameters
    ----------
    order : int, default 3
        1 for single words, 2 for pairs, and so on, up to 100.
    vocabulary : iterable of str or None, default None
        The declared words, or None for a growing vocabulary.
    smoothing : {"interpolate", "back-off"}, default "interpolate"
        How the estimates from longer and shorter histories are combined.
    discount : float, default 0.75
        D, between 0 and 1.

    Attributes
    ----------
    vocabulary : list of str
        The words, with the unknown word and the end of the sentence.
    rows : int
        Number of sentences learnt.
    tokens : int
        Number of words learnt, the ends of sentences included.
    loss : float
        Cumulative log loss in nats.

    References
    ----------
    Ney, Essen and Kneser (1994), docs/bibliography.md.

    Examples
    --------
    >>> model = NGram(2).update(["I sat on a chair", "he sat on a sofa", "the fat cat"])
    >>> sat, fat = model.logpmf(["I sat on a chair", "I fat on a chair"])
    >>> bool(sat > fat)
    True
    """

    name = "n-gram"
    columns = 1

    def __init__(
        self,
        order: int = 3,
        vocabulary: Iterable[str] | None = None,
        smoothing: str = "interpolate",
        discount: float = 0.75,
    ) -> None:
        if not isinstance(order, (int, np.integer)) or not 1 <= order <= LONGEST:
            raise ValueError(f"order must be a whole number from 1 to {LONGEST}, got {order!r}")
        if not 0.0 < discount < 1.0:
            raise ValueError(f"discount must lie between 0 and 1, got {discount!r}")
        self.order, self.discount = int(order), float(discount)
        self.smoothing = choice("smoothing", smoothing, SMOOTHINGS)
        self.grows = vocabulary is None
        self._words = dict.fromkeys([UNKNOWN, END, *(() if vocabulary is None else vocabulary)])
        self._after: dict[tuple[str, ...], Counter[str]] = {}
        self._total: Counter[tuple[str, ...]] = Counter()
        self.rows, self.tokens, self.loss, self.shards = 0, 0, 0.0, 1

    # ---- files

    def __getstate__(self) -> dict[str, Any]:
        """The counts as a table with rows of a history (padded in front by -1), the next word, and its count."""
        place = {word: k for k, word in enumerate([*self._words, START])} | {w: k for k, w in enumerate(self._words)}
        counts = [
            [-1] * (self.order - 1 - len(history)) + [place[w] for w in (*history, word)] + [count]
            for history, after in self._after.items()
            for word, count in after.items()
        ]
        state = {name: value for name, value in vars(self).items() if name not in ("_after", "_total")}
        table = np.array(counts, np.int64).reshape(len(counts), self.order + 1)
        return state | {"_words": self.vocabulary, "_counts": table}

    def __setstate__(self, state: dict[str, Any]) -> None:
        words, counts = state.pop("_words"), state.pop("_counts").tolist()
        self.__dict__.update(state)
        self._words, self._after, self._total = dict.fromkeys(words), {}, Counter()
        words = [*words, START]
        for *places, word, count in counts:
            history = tuple(words[k] for k in places if k >= 0)
            self._after.setdefault(history, Counter())[words[word]] = count
            self._total[history] += count

    @staticmethod
    def _check_saved(fields: dict[str, Any]) -> None:
        order, words, counts = fields["order"], fields["_words"], fields["_counts"]
        want(type(order) is int and 1 <= order <= LONGEST, f"`order` must be a whole number from 1 to {LONGEST}")
        want(isinstance(words, list) and all(type(word) is str for word in words), "`_words` must be strings")
        want(
            words[:2] == [UNKNOWN, END] and len(set(words)) == len(words), "`_words` must differ, the unknown one first"
        )
        want(type(fields["grows"]) is bool and fields["smoothing"] in SMOOTHINGS, "`grows` or `smoothing` is unknown")
        discount = fields["discount"]
        want(is_number(discount) and 0.0 < discount < 1.0, "`discount` must lie between 0 and 1")
        known = isinstance(counts, np.ndarray) and counts.dtype == np.int64 and counts.ndim == 2
        want(known and counts.shape[1] == order + 1, f"`_counts` must be a table of {order + 1} columns of integers")
        history, word, count = counts[:, :-2], counts[:, -2], counts[:, -1]
        want(bool(((word >= 0) & (word < len(words))).all()), "`_counts` must name words of the vocabulary")
        shorter = (history == -1) & (np.cumsum(history != -1, axis=1) == 0)
        want(
            bool((((history >= 0) & (history <= len(words))) | shorter).all()), "`_counts` must name words before them"
        )
        want(bool(((count > 0) & (count < 1 << 40)).all()), "`_counts` must count")
        want(len(np.unique(counts[:, :-1], axis=0)) == len(counts), "`_counts` must count each history and word once")
        want(all(map(is_count, (fields["rows"], fields["tokens"], fields["shards"]))), "`rows` must be a count")
        want(is_number(fields["loss"]), "`loss` must be a number")

    @property
    def vocabulary(self) -> list[str]:
        """The words, with the unknown word and the end of the sentence."""
        return list(self._words)

    def probability(self, word: str, history: tuple[str, ...] = ()) -> float:
        """The probability of a word after a history.

        Parameters
        ----------
        word : str
            The word; any word that is not in the vocabulary is treated as the unknown word.
        history : tuple of str, default ()
            The words before it; the last `order` − 1 of them are used.

        Returns
        -------
        float
            The probability.
        """
        word = word if word in self._words else UNKNOWN
        return self._p(word, self._cut(history))

    def _cut(self, history: tuple[str, ...]) -> tuple[str, ...]:
        return history[max(0, len(history) - self.order + 1) :]

    def _p(self, word: str, history: tuple[str, ...]) -> float:
        after = self._after.get(history)
        if after is None:
            return self._p(word, history[1:]) if history else 1.0 / len(self._words)
        total, count = self._total[history], after.get(word, 0)
        if self.smoothing == "interpolate":
            lower = self._p(word, history[1:]) if history else 1.0 / len(self._words)
            return (max(count - self.discount, 0.0) + self.discount * len(after) * lower) / total
        if len(after) == len(self._words):  # every word was seen after h, so there is nothing to back off to
            return count / total
        if count:
            return (count - self.discount) / total
        shorter = history[1:]
        lower = self._p(word, shorter) if history else 1.0 / len(self._words)
        seen = math.fsum(self._p(w, shorter) for w in after) if history else len(after) / len(self._words)
        return self.discount * len(after) / total * lower / (1.0 - seen)

    def _sentences(self, x: Any) -> Iterator[list[str]]:
        if isinstance(x, str):
            raise ValueError(f"sentences come in a list; got the single text {x[:40]!r}")
        for row, sentence in enumerate(x):
            if isinstance(sentence, str):
                yield sentence.split()
            elif isinstance(sentence, (list, tuple)) and all(isinstance(w, str) for w in sentence):
                yield list(sentence)
            else:
                raise RowError(row, f": {sentence!r} is not a sentence (a text, or a list of words)")

    def _walk(self, sentence: list[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Each word, and the end of the sentence, with the history it is predicted from."""
        history: tuple[str, ...] = (START,) * (self.order - 1)
        for word in [*sentence, END]:
            yield word, history
            seen = word if self.grows or word in self._words else UNKNOWN
            history = self._cut((*history, seen))

    def _learn(self, word: str, history: tuple[str, ...]) -> None:
        if word not in self._words:
            if self.grows:
                self._words[word] = None
            else:
                word = UNKNOWN
        for k in range(len(history) + 1):
            self._after.setdefault(history[k:], Counter())[word] += 1
            self._total[history[k:]] += 1

    def progressive(self, x: Any) -> np.ndarray:
        out = []
        for sentence in list(self._sentences(x)):
            paid = 0.0
            for word, history in self._walk(sentence):
                paid -= math.log(self.probability(word, history))
                self._learn(word, history)
            out.append(-paid)
            self.tokens += len(sentence) + 1
            self.loss += paid
        self.rows += len(out)
        return np.array(out)

    def logp(self, x: Any) -> np.ndarray:
        walks = (self._walk(sentence) for sentence in self._sentences(x))
        return np.array([math.fsum(math.log(self.probability(w, h)) for w, h in walk) for walk in walks])

    logpmf = logp

    def explain(self, sentence: Any) -> list[tuple[str, float]]:
        """The log probability of each word of a sentence, and of its end.

        Parameters
        ----------
        sentence : str or list of str
            The sentence.

        Returns
        -------
        list of (str, float)
            Each word with its log probability in nats.
        """
        (words,) = self._sentences([sentence])
        return [(w, math.log(self.probability(w, h))) for w, h in self._walk(words)]

    def sample(self, size: int, rng: np.random.Generator, longest: int = 100) -> list[str]:
        """Draw sentences word by word.

        Parameters
        ----------
        size : int
            Number of sentences.
        rng : numpy.random.Generator
            The source of randomness.
        longest : int, default 100
            Largest number of words in a sentence.

        Returns
        -------
        list of str
            The sentences.
        """
        out = []
        for _ in range(size):
            words: list[str] = []
            while len(words) < longest:
                history = self._cut((START,) * (self.order - 1) + tuple(words))
                p = np.array([self._p(w, history) for w in self._words])
                word = self.vocabulary[int(rng.choice(p.size, p=p / p.sum()))]
                if word == END:
                    break
                words.append(word)
            out.append(" ".join(words))
        return out

    def __add__(self, other: Self) -> Self:
        """Merge two models: their counts add."""
        mine = (self.order, self.smoothing, self.discount, self.grows)
        same = mine == (other.order, other.smoothing, other.discount, other.grows)
        if not same or (not self.grows and self._words != other._words):
            raise ValueError(f"only n-grams of the same order, smoothing and vocabulary add up: {self!r}, {other!r}")
        both = self.copy()
        both._words |= other._words
        for history, after in other._after.items():
            both._after.setdefault(history, Counter()).update(after)
        both._total.update(other._total)
        both.shards = total_shards(self, other)
        both.rows, both.tokens, both.loss = self.rows + other.rows, self.tokens + other.tokens, self.loss + other.loss
        return both

    def copy(self) -> Self:
        new = self.fresh()
        new._words = dict(self._words)
        new._after = {history: Counter(after) for history, after in self._after.items()}
        new._total = Counter(self._total)
        new.rows, new.tokens, new.loss, new.shards = self.rows, self.tokens, self.loss, self.shards
        return new

    def fresh(self) -> Self:
        words = None if self.grows else [w for w in self._words if w not in (UNKNOWN, END)]
        return type(self)(self.order, words, self.smoothing, self.discount)

    @property
    def perplexity(self) -> float:
        """The perplexity: e to the power of the mean log loss per word."""
        return math.exp(self.loss / self.tokens) if self.tokens else math.nan

    def certificate(self) -> DensityCertificate:
        """Certify the regret against the best fixed distribution of words given histories; no bound is known."""
        best = -math.fsum(
            c * math.log(c / self._total[history])
            for history, after in self._after.items()
            if len(history) == self.order - 1
            for c in after.values()
        )
        grown = Assumption(f"the vocabulary grew to {len(self._words)} words: declare it", False)
        need = (grown,) if self.grows else ()
        note = ("the rival knows how often each word followed each history",)
        theorem = Theorem(f"{self.order}-gram with absolute discounting ({self.smoothing})", "", PREDICTIVE.statement)
        return judge(theorem, self.loss, best, math.nan, self.rows, need, note + note_of_shards(self.shards, False))

    def describe(self) -> str:
        return f"order {self.order}, {len(self._words):,} words, perplexity {self.perplexity:.4g}"

    def __repr__(self) -> str:
        return f"<{self.order}-gram, {self.rows:,} sentences>"
