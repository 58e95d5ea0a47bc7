"""Which errors of rounding are reckoned with: each constant, and what it may turn into what.

They stand here alone, as plain floats, so that compiled files can take them from here too. Each
section begins with what its numbers decide.
"""

from __future__ import annotations

# --- Units of rounding: too large a unit makes a bound weaker, never wrong ------------------------

# Unit roundoff of double precision: a sum, product or quotient is off by at most this share of
# itself. SINGLE_EPSILON is that of single precision, for models that compute in it: to take EPSILON
# for one of these would leave answers on the wrong side and put bounds above points that win.
EPSILON = 2.0**-53
SINGLE_EPSILON = 2.0**-24
# A model file with a larger unit than this, four times that of half precision, is refused: no
# library computes like that, and a margin for it would leave no answers.
COARSEST_UNIT = 2.0**-9
# Twice EPSILON. A sum of n products of floats, in any order, is off by at most
# gamma_n = n u / (1 - n u) of the sum of their sizes, and n UNIT is more than that for all n
# below 2^51. The slack also pays for the rounding of the error bounds themselves, but
# not for underflow.
UNIT = 2.0**-52
# Multiplying by this splits a float into two halves whose products are exact (Dekker 1971).
SPLITTER = 2.0**27 + 1.0
# Four times the relative error of a sum or product of numbers of two floats each, and the doubt
# left when such a number is rounded once. Too much of either sends a row to rational numbers,
# which give the same value more slowly.
DOUBLED_UNIT = 2.0**-100
DOUBLED_DOUBT = 2.0**-104
# Covers the rounding of error bounds: sums of fewer than 2^30 terms, none of them negative, are
# off by at most 2^-22 of themselves.
SAFE = 1.0 + 2.0**-20

# --- Underflow and overflow: larger guards make a bound weaker or a decision slower ---------------

# The least positive float: half of it is what one result that underflows may lose.
LEAST_FLOAT = 2.0**-1074
# Above what underflow takes from one product of numbers that were scaled to 1 ...
PRODUCT_UNDERFLOW = 2.0**-1060
# ... and from a sum of fewer than 2^30 products.
SUM_UNDERFLOW = 2.0**-1040
# Squares below this lose digits or vanish, and so do their sums. Distances that are this small are
# left to exact arithmetic; bounds lose as much.
TINY_SQUARE = 2.0**-1000
# What two roundings of the root of a sum of such squares lose, at the most; and the root of a sum
# of 2^20 squares that vanish altogether.
TINY_ROOT = 2.0**-560
VANISHED_ROOT = 2.0**-520
# Products of up to three numbers that are at least so large have remainders that are floats too.
# Sums with smaller ones are left to rational numbers: slower, and the same.
LEAST_SPLIT = 2.0**-900
# The minimum of a quadratic function is known no better than this, in its units and for changes
# of size 1: a value below becomes no claim.
TINY_MINIMUM = 1e-200
# How much more than needed a sum is shifted by where `check_certificate` is not to show less: it
# guesses, and takes up to an eighth more. Too much sends a box to rational numbers.
MORE_SHIFT = 1.25
# Multipliers beyond HUGE are noise from a failed solver, and their products could overflow; those
# below FAINT could underflow. Neither is charged, which is always allowed: a weaker bound.
HUGE = 1e100
FAINT = 1e-100

# --- What an answer may be off by: a point that misses by rounding becomes an answer --------------

# How far a condition of the user may be off, relative to the numbers that meet in it: an equality,
# which rarely holds to the last digit, and an inequality, which a sum of decimals may miss that is
# its limit. Inputs and answers that are off by less keep it, and no proof on a grid excludes one.
EQUALITY_ROUNDING = 2.0**-40
INEQUALITY_ROUNDING = 2.0**-50
# How far a margin may be off: like an equality it rarely holds to the last digit.
MARGIN_ROUNDING = 2.0**-40
# A value this near to the grid, as a share of its size, is on it: 0.1 + 0.2 is a decimal. Boxes
# are widened by as much before anything is claimed. Never more than a small share of a step: where
# numbers are so large that theirs is more, neighbours on the grid stay apart.
GRID_ROUNDING = 2.0**-44
SHARE_OF_STEP = 2.0**-8
# The same where steps are counted from the input: their sum is rounded once more.
SHARE_OF_SUM = 0.25
# Steps of a difference of scores that are a smaller share of the numbers in it count as none.
LEAST_LEAD = 2.0**-30
# From here on doubles are whole numbers, and the one next to a multiple of a step is none.
WHOLE_DOUBLES = 2.0**53
# How near to a listed value another one counts as it, and by how much a least change may be missed:
# the last digits of a sum of decimals. A point has no neighbours that it could be blurred into.
POINT_ROUNDING = 2.0**-51
# Share of what counts as a threshold that it keeps for itself where a condition begins behind it:
# beyond, the condition has to be kept, so that boxes may end anywhere from this share to the whole.
LEFT_OUT = 0.25
# What counts as a threshold where it and the input are both 0: any smaller number is one.
LEAST_THRESHOLD = 2.0**-960
# Share of a quadratic condition that bounds give up, so that a factor that is off by e costs e^2
# over this and not e: with the rounding of floats, both end near 1e-11. Points are judged by the
# condition as stated.
FACTOR_TRADE = 2.0**-36
# What OPTIMAL means for shared metrics. The gap itself is reported, so that this changes a word.
EXACT_GAP = 1e-6

# --- What is looked at again: a quick decision becomes a slow one that is the same or better ------

# A bound that misses the cost by no more than this share is good enough: exact arithmetic or
# another engine could close little more.
CLOSED_GAP = 1e-7
# Scores of two prototypes that are this near, as a share of them, are compared exactly.
CLOSE_SCORES = 2.0**-40
# Between two models that are the same up to rounding, distances that differ by less than this
# share are a close call: the model behind is asked, and nothing is claimed.
CLOSE_CALL = 2.0**-30
# A box with less room than this share of its sides is a point, but for rounding.
NO_ROOM = 2.0**-40
# By which share ends of a range are pulled in first where a row does not hold; more follows. That
# the row holds then is decided in rational numbers.
FIRST_PULL = 2.0**-51
# A width in steps is taken for the next whole number if it misses it by no more, as engines leave
# them. Whether rows hold there is decided in rational numbers.
NEXT_TO_STEP = 2.0**-18
# Of the quadratic form of a matrix, the share that its factor keeps. One that keeps less than
# GOOD_SHARE is looked for in whole numbers as well; one that keeps NEARLY_ALL is not corrected.
GOOD_SHARE = 1.0 - 2.0**-20
NEARLY_ALL = 1.0 - 2.0**-40
# A factor with a smaller pivot, as a share of its column, is left to another engine.
DEFINITE_PIVOT = 1e-12

# --- Margins: an answer becomes one a little further in, at its own cost --------------------------

# The default margin asks for this share of the lead that has to be gained, but at least for what
# rounding can blur at the prototype that is to win, and at most for MOST_BLURS times that.
SHARE_OF_LEAD = 2.0**-25
MOST_BLURS = 2.0**8
# Above this share of the lead a margin is seen in the gap. It is then no more than the rounding of
# differences of distances asks for, in which nothing counts that prototypes share.
UNSEEN_SHARE = 2.0**-22
# An answer with a confidence aims at so much more than it has to have, as a share of the scores
# that meet: what is computed of it is rounded.
CONFIDENT_CUSHION = 2.0**-34
# Of what an answer has beyond a confidence, the share that is asked for next while that is seen in
# the gap. That the answer has the confidence is decided exactly where it is close.
FINER_CUSHION = 2.0**-5
# A default margin that leaves more than CLOSED_GAP open is tried again at this share of itself.
FINER_MARGIN = 2.0**-12
# Share of the scores that meet in `predict` which its rounding can blur.
SCORE_ROUNDING = 2.0**-48
# Share of scores that the rounding of a foreign model may hide of a lead. Too little of it gives
# up an answer.
HIDDEN_LEAD = 2.0**-46
# Share of the lead that decides about a row below which what rounding can hide is bounded for many
# rows at once. A larger share makes bounds weaker and answers dearer by about as much.
NEGLIGIBLE_LEAD = 2.0**-34
# Rounding of linear conditions, as a share of their terms: how far inside solvers aim. Bounds of a
# feature that cross by less do so by rounding alone.
CROSSING = 2.0**-48
# Half of this share of a tangent may be lost to rounding; a descent aims inside by all of it.
TANGENT_ROUNDING = 1e-13
# The margin that keeps a first search on a grid off ties, as a share of the distances.
CLEAR_OF_TIES = 2.0**-18

# --- What is refused: an input becomes an error in words ------------------------------------------

# Larger differences between a matrix and its mirror image are no rounding. Smaller ones are used
# as they are: a quadratic form sees the mean of both, taken exactly.
SYMMETRY_TOLERANCE = 1e-10
# Eigenvalues this near to zero are called rounding in what is said of a refused matrix.
NEARLY_SEMIDEFINITE = 1e-7
# Priors move boundaries: how far the moved prototypes may miss what the priors ask for. Rounding
# stays far below, a system without solution far above. What they miss is part of the blur.
PRIOR_TOLERANCE = 1e-9
# A `value` that a subclass of a cost computes itself may differ by this share from that of its
# parts, which is the one that is reported.
OWN_COST_ROUNDING = 1e-9
# How far apart two ways to compute the same sum may end up, relative to what is summed, and to the
# largest sum of the row: steps of a pipeline may mix columns of very different sizes. That a map
# agrees to this on probe rows is evidence, not proof.
PROBE_ROUNDING = 1e-9
PROBE_ROUNDING_ON_THE_WAY = 2.0**-42

# --- Choices among models that are equally right: the blur bounds what is wrong with any ----------

# Directions that a decomposition shrinks by more than this, once rows and columns have one size,
# are its rounding: prototypes are not moved along them.
RANK_TOLERANCE = 2.0**-46
# Singular values of linear scores below this share of the largest are rounding of a decomposition.
# What is left out by it is part of the bound on what was read wrongly.
SCORE_RANK = 2.0**-50
# How far a limit that is taken through a function is moved outwards, as a share of itself. It makes
# the region larger, so that bounds hold.
LIMIT_ROUNDING = 2.0**-50
# Slopes below this share are taken for rounding when units are guessed.
FAINT_SLOPE = 2.0**-40

# --- Solvers: a good point or good multipliers become worse ones, an answer dearer, a bound weaker

# Points are judged and multipliers evaluated by others: no claim rests on any of these.
#
# The tightest that HiGHS takes, of a program scaled to order 1; and the entries that it leaves out.
HIGHS_TOLERANCE = 1e-10
HIGHS_LEAST_ENTRY = 1e-12
# Clarabel's, in the order in which they are tried; `polish` makes up for loose ones.
CONIC_TOLERANCES = (1e-10, 1e-9, 1e-6)
# Of one round of a descent by convex programs.
ROUND_TOLERANCE = 1e-9
# Slack below this share of the distances counts as none.
NO_SLACK = 1e-7
# Costs and distances below this are not measured in units of themselves.
LEAST_UNIT = 1e-150
# A scaled variable this close to a bound, or to 0 where leaving 0 costs, is taken as there; what
# the sharpened point may violate; and what its linear systems treat as dependent.
AT_END = 1e-6
POLISHED = 1e-10
POLISH_RANK = 1e-13
# A feature that rows see less than this beside others, in units of what features cost, is lost to a
# solver that measures by cost.
HARDLY_SEEN = 1e-6
# A solver's point that misses a condition by no more than this share of its terms meets it when two
# points are compared.
MET_SHARE = 1e-9
# What the center of an ellipsoid, by which a program is scaled, treats as dependent.
FAR_CENTER = 1e-13
# Eigenvalues, as a share of the largest number, that may be rounding of nothing: whether a sum is
# flat there is looked at in rational numbers.
NEARLY_FLAT = 1e-10
# A side that is shorter than this holds its feature in place: multipliers are divided by its
# square.
LEAST_HALF = 1e-100
# Where a box is narrower than this share of what the cost allows, its feature is held as well: it
# is pinned by conditions that give way by rounding.
HELD_SHARE = 2.0**-34
# A column that rows add up to but for this share of its square has one value where they hold.
PINNED_SHARE = 1e-12
# Directions that metrics see less than this share of the first one are rounding of a decomposition.
SEEN_RANK = 1e-11
# What is added to the diagonal of normal equations, as a share, and the step that leads nowhere.
LEAST_CURVE = 1e-13
LEAST_STEP = 1e-4
# Multipliers that miss an objective by more than this do not tell how far a bound can get; the
# least share of a gap that one step aims at; one over the longest step; and a sum of sizes that
# stands for none where one divides by it.
MISSED_OBJECTIVE = 1e-3
LEAST_AIM = 1e-4
LONGEST_STEP = 2.0**-10
NO_SIZE = 1e-9
# Pivots of the simplex method smaller than this, as a share of the row, are none; ratios nearer
# than that are a tie; and less than this share of the cost is left as it is.
PIVOT = 1e-11
TIE = 1e-12
LEFT_COST = 1e-14
# A row with less than this share of its length left beside the others depends on them; a bound is
# broken beyond this share of the change, and a multiplier counts beyond it.
DEPENDENT = 1e-13
BROKEN_BOUND = 1e-14
# A length that stands for 0 where one divides by it.
LEAST_LENGTH = 1e-300
# A point of tangency that moves by less than this is found.
STILL = 1e-10
# A cell is passed over if overtaking one rival costs more than the best answer by this share, so
# that no rounding makes it the cheapest after all.
CLEARLY = 1.0 + 1e-9

# --- Searches: they end sooner or later, with a better or a worse answer and bound ----------------

# Relative decrease at which a local search stops, and the coarsest that a descent on the way to
# the grid or to a box is worth.
FLAT = 1e-9
DIVING = 1e-6
# Share of the way to a round's solution that may stay open for lack of more tangents, and the
# share of the cost below which the valley is not in question any more.
OPEN_WAY = 1e-3
SETTLED = 1e-4
# How far a start may break a constraint, as a share of its terms; a descent mends that.
START_SLACK = 1e-12
# A gap below this is beyond what a relaxation's multipliers can show; and the share of the gap
# that a relaxation may lose to its own tolerance.
FINEST_GAP = 1e-8
SHARE_OF_GAP = 1e-2
# How near to a convex quadratic condition, as a share of its terms, it counts as limiting a change.
AT_CURVE = 1e-6
# Sides of a box that differ by no more than this share of them are one to a relaxation, as where
# the change to a value is no double. Bounds are those of the box as it is.
SLIVER = 2.0**-44
# Boxes narrower than this share of the first one are not cut any more.
NARROW = 2.0**-26
# A rival matters to a relaxation if it is charged more than this share of what the dearest is;
# left out, it is broken beyond this share of the distances.
UNCHARGED = 1e-6
# A product of the sides of two linear forms that is charged for by no more than this share of what
# the dearest is, is left out in the parts of a box.
UNPAID_PRODUCT = 1e-3
BROKEN_RIVAL = 1e-6
# Where a box has no end, multipliers are tried at this share of themselves as well.
SLIGHTLY_LESS = 1.0 - 2.0**-30
# A relaxed value this near to the grid, in steps, counts as on it.
ON_GRID = 1e-6
# How much more than what was asked for is looked for, as a share of it, so that an answer keeps a
# confidence that bends the border of a cell when that is checked exactly. Bounds are about what was
# asked for.
RIVAL_CUSHION = 2.0**-26
# Shares of that cushion, one after the other while a proof is open: a small cost needs a finer one.
CUSHION_SHARES = (1.0, 2.0**-4, 2.0**-8)
# By which share a rival that such a confidence implies is put farther off than it could be, so that
# rounding leaves it implied. That it is, is checked exactly.
RIVAL_SLACK = 2.0**-34
# Where rounding leaves no such rival, one is put this share of the way to the point to be left out.
LOOSER_RIVAL = 2.0**-10
# This near, in steps, it is on the grid but for the rounding of a solver.
HELD = 1e-12
# A box that costs this share of the best answer is not worth searching. No bound rests on it.
AS_GOOD = 1.0 - 1e-9
# How far towards better multipliers one goes so that rounding leaves the goal passed, in ways to
# the goal. The bound is evaluated anew from the multipliers that result.
PAST_GOAL = 1.0 + 1e-9
# A point this near to a threshold, as a share of its size, may be meant to be at it.
AT_THRESHOLD = 1e-5
# How much a condition may be broken, as a share of its terms, before a box is cut for it.
BROKEN_SHARE = 1e-9
# What counts as dependent when a point is pulled into a cell, and when conditions are met.
PULL_RANK = 1e-9
# Columns, and directions of columns in units of their deviation, that vary by no more than this
# share are taken to be fixed where ellipsoids are fitted: what is stated then is what holds.
FLAT_DIRECTION = 1e-9
REPAIR_RANK = 1e-12

# --- Words and pictures: a sentence or a line becomes another one; numbers stay -------------------

# A condition that has less than this share of its numbers left is held with equality.
HELD_WITH_EQUALITY = 1e-7
# Costs that agree to this share agree to the six digits that a page shows.
SHOWN_ALIKE = 1e-6
# Of a gap that counts as none no digits are shown: they differ from one processor to another.
SHOWN_GAP = EXACT_GAP
# A summary counts no change smaller than this share of the value.
COUNTED_CHANGE = 2.0**-44
# Changes that make up no more than this share of the cost are left out of a shown row that holds
# without them: solvers leave 1e-14 where they mean 0. Those that are needed are shown.
DUST = 1e-9
# A drawn condition counts as kept if it is missed by less than this share of the numbers in it, and
# a point is drawn as lying in the plane if it is off by less than this share.
DRAWN_ROUNDING = 2.0**-36
IN_PLANE = 1e-9
# Probabilities that differ by less are equal: answers lie on the boundary between two labels, where
# `predict_proba` is one half but for rounding, in single precision for some libraries.
CHANCE_TIE = 1e-4

__all__ = [name for name in dir() if name.isupper()]
