"""The numbers that all searches of the exact engine but those for cards are tuned by.

They decide how long a search takes and how far its bound comes down, never whether an answer is right: tolerances and
rounding allowances stand beside the proofs that need them. Where a line does not say that a number was measured, it was
set by trial on lists like those of ``docs/exact_bench.md``; ``scripts/bench_exact.py`` and ``bench_survival.py``
measure a change. Work is counted in pairs examined. ``ltr/native/weight_space/tuning.h`` has those of the C++ code.
"""

# --- The weight-space search: what is tried --------------------------------------------------------------------------

# pairs times coordinates of a proof: beyond, a box takes tenths of a second and bounds hardly move
MOST_TERMS = 50_000_000
FEW_PAIRS = 10_000  # pairs up to which a proof by boxes is always tried, and two columns are left to boxes
TERMS_PER_SECOND = 2e8  # pairs times coordinates of the boxes searched in a second, measured
LEAST_BOXES = 30  # boxes that lower the bound for one feature; twice as many for every two more
MOST_DOUBLINGS = 10  # of these boxes
SETS_TOGETHER = 200  # sets of columns whose spaces are searched together
FIRST_SEARCH = 0.1  # seconds of local search before the first boxes, on short lists
FIRST_RESTARTS = 30  # restarts of that search
FIRST_SEARCH_PER_ROW = 2e-6  # seconds for each row that are added before arcs
MOST_SUPPORTS = 5_000  # sets of columns that are searched one by one where they have no bounds
MOST_BOUNDED = 300_000  # the same where they have
LARGEST_SUPPORT = 6  # columns of such a set
BOUNDED_TOGETHER = 2_000  # sets bounded between two checks of the clock

# --- The weight-space search: rounds of targets ----------------------------------------------------------------------

FIRST_TARGET = 0.75  # share of the gap at which a series of targets begins
GROWTH = 3.0  # factor by which the work grows from target to target
LEAST_GROWTH = 1.3  # the least of these factors
UNMEASURED_GROWTH = 2.5  # the largest one while the work of one target alone is known
REACH = 4.0  # factor by which the work of the value itself may grow to be the next target
REACH_SHARE = 0.8  # share of the time left that this may take
FAR_REACH = 64.0  # the same factor for a larger step, whose work is less certain
FAR_REACH_SHARE = 0.3  # share of the time left that this may take
LAST_SHARE = 0.67  # share of the work of several targets that is the last one's
POWER = 0.6  # power of the distance in which the work's logarithm is about linear, measured
STEEPNESS = 6.0  # least growth of that logarithm on the way from the first target to the value
NEAREST = 0.2  # least of the next distance, as a share of the last one
FARTHEST = 0.95  # the largest such share
HALVINGS = 30  # of an interval that contains a distance
LARGEST_EXPONENT = 99.0  # logarithm of a growth, so that nothing overflows
MOMENT = 1e-3  # shortest time that is measured, in seconds
QUANTUM_PAIRS = 4  # pairs whose contribution is a gap below which the work hardly grows
FINEST_GAP = 1e-7  # share of the statistic's size below which the next target is the value itself

# --- The weight-space search: better weights and coordinates ---------------------------------------------------------

WORTH_SEARCHING = 500_000  # pairs examined at a target from which better weights are searched for
WORTH_ADAPTING = 2_000_000  # pairs examined at one target from which better coordinates are tried
ADAPTING_SECONDS = 1.2e-5  # seconds that adapted coordinates take, by the fourth power of features, measured
ADAPTING_SHARE = 0.2  # share of the time limit that they may take
ADAPTING_GAIN = 0.2  # gain, a logarithm of boxes, from which they are used
ADAPTED_FROM = 5  # features from which coordinates are adapted before the first box
ADAPTED_TO = 20  # most features with which they are adapted: the descent keeps a matrix of d⁴ numbers
ADAPTED_CONDITION = 1e-6  # smallest share of the largest variance that an axis may have
ADAPTED_PAIRS = 2000  # pairs examined, evenly spaced
ADAPTED_WON = 0.3  # weight of a pair that the best weights win
ADAPTED_SMOOTH = 1e-3  # |t| is the root of t² + this²
DESCENT_STEPS = 300  # most steps of the descent
DESCENT_ENOUGH = 1e-4  # share of the decrease that the slope promises from which a step is taken
DESCENT_SHORTEST = 1e-6  # shortest step
DESCENT_LOOK = 30  # steps in which J has to fall
DESCENT_FLAT = 0.01  # by this much, for the descent to go on

# --- The weight-space search: boxes ----------------------------------------------------------------------------------

PIECE = 4_000_000  # pairs that a task examines between two checks of the clock: about a tenth of a second
ALONE = 500_000  # pairs examined before threads are started
BOXES_TOGETHER = 8  # largest number of boxes per task
NARROW_BOXES = 16  # largest number of boxes too narrow to split that a task returns
POOL_POLL = 0.05  # seconds between two checks of the clock
BLOCK = 1_000_000  # numbers computed between two checks of the clock
CONFLICTS_PER_PAIR = 4  # candidates for conflicts per pair
CONFLICT_LENGTH = 1.5  # length of f, of at most 2, from which a conflict would be luck
CONFLICT_PAIRS = 6_000  # most pairs with candidates for conflicts, times the number of objectives
CONFLICT_WIDE = 12  # features above which there are candidates up to fewer pairs
CONFLICT_PAIRS_WIDE = 2_000  # namely these
SPACES_KEPT = 8  # spaces of sets of columns in memory
REGIONS = 7  # largest number of boxes that become nodes of SCIP alone
REGION_WORK = 1_000_000  # pairs examined per node of SCIP at first
REGION_SHARE = 1 / 32  # pairs examined per node later on, as a share of all examined so far

# --- Local search ----------------------------------------------------------------------------------------------------

RESTARTS = 300  # ascents from perturbed local optima, after those from the starting points
UNLIMITED_RESTARTS = 1_000_000  # as many as fit the time
BESIDE_PAUSE = 5.0  # seconds before a search beside other work; doubled where it finds nothing
BESIDE_SECONDS = 0.1  # least seconds of such a search
SEARCHED_SUPPORTS = 10  # sets of features searched if the number of non-zero weights is limited
UNLIMITED_SHARE = 0.25  # share of the time spent without that limit, to find the features to begin with
SUPPORT_DRAWS = 20  # attempts to find a set that was not searched yet
SIGN_PATTERNS = 3  # required columns of which all signs are tried where no weights are known
RESTARTS_PER_WHOLE = 10  # restarts for each ascent of whole numbers
RANDOM_DIRECTIONS = 8  # random directions per round
STALE = 30  # ascents without a gain before the search moves elsewhere
ELITES = 8  # optima that it moves between
FIRST_STEP = 1.0  # size of a perturbation at first, as a share of the spread of the scores
LAST_STEP = 1e-3  # the same in the end
PENALTY = 10.0  # what missing all of a demand costs, as a multiple of the best order's value
LISTED_PAIRS = 5_000  # pairs up to which they are listed
MANY_PAIRS = 200_000  # pairs above which fewer lines are searched
MOST_PAIRS = 20_000_000  # most pairs that are listed: a line search takes about a second
LINE_SECONDS = 5e-8  # seconds of a line search for each pair, measured
LINE_ROUNDS = 3  # rounds of line searches that have to fit the time
ITEM_LISTS = 100  # lists from which items are quicker than pairs
ITEM_FLAT = 0.5  # share of places with the weight of the one below from which they are
PAIRS_PER_ITEM = 8  # pairs that take as long as an item
ASCENT_WORK = 2_000_000  # pairs examined before the clock is read: about a tenth of a second
ASCENT_POLL = 0.02  # seconds between two checks of the clock
SEPARATING_ROWS = 10  # rows per feature from which the separating program takes too long
SEPARATING_ENTRIES = 10_000_000  # most entries of its matrix
SEPARATING_SHORTEST = 1e-3  # least seconds for it
SEPARATING_LONGEST = 1.0  # most seconds for it

# --- Before and after every search -----------------------------------------------------------------------------------

PROVABLE = 8  # most features with which lists of about 50 observations are proven optimal in seconds
FEATURES_SHARE = 0.1  # share of the time for single features before the search
FEATURES_ROOM = 1.2  # time for the others after it, as a multiple of what the first took
FEATURES_GRACE = 0.2  # seconds after a limit in which single features are still compared
MEMORY_SHARE = 0.5  # share of the free memory that a solve may use if no limit is given
MEMORY_PAUSE = 0.05  # seconds between two measurements of the process
TRACE_PACE = 0.1  # seconds between trace points that only lower the bound

# --- Arcs of one or two columns --------------------------------------------------------------------------------------

ARCS_TOGETHER = 4  # arcs halved together, times threads
ARC_ITEMS_TOGETHER = 400_000  # most items of these together: tenths of a second
ARC_ENTRIES = 100_000_000  # most entries of statistic tables: layers times items of every list
ARC_CHANGES_PER_ITEM = 4  # changes per item up to which all are visited
ARC_CHANGES = 1_000  # changes up to which they are in any case

# --- Vertices of boxes too narrow to split ---------------------------------------------------------------------------

VERTICES_WORK = 1_000_000  # most operations on fractions for the vertices of a simplex around a box
VERTICES_OFFERED = 4  # most sets of pairs with the largest value for which weights are offered
VERTICES_NEIGHBOURS = 81  # float64 neighbours of a vertex that are offered

# --- The paper's models in SCIP --------------------------------------------------------------------------------------

MODEL_SEARCH = 2.0  # most seconds of local search before a model
BUILDING_SHARE = 0.1  # share of the time limit for building a model
BUILDING_LEAST = 0.4  # seconds that building may always take
BUILDING_BLOCK = 64  # comparisons between two checks of the clock

# --- Central weights: these change the answer, within the sampling error of a mean -----------------------------------

CENTRAL_WALKERS = 32  # walkers over whose steps the mean is taken
CENTRAL_FEWEST = 8  # least of them, for long lists: the statistic is smoother there
CENTRAL_ROWS = 200_000  # rows times walkers, above which fewer walkers are used
CENTRAL_STEPS = 48  # steps of each walker
CENTRAL_BURN_IN = 16  # the first of them, which are not averaged

# --- Ranges of places, fronts, certificates --------------------------------------------------------------------------

RANGES_SAMPLES = 4_000  # good weights that are sampled
RANGES_SHARE = 0.1  # share of the time for them
RANGES_STEPS = (0.3, 0.1, 0.03, 0.01)  # lengths of their steps, relative to the largest weight
RANGES_BRIEF = 0.25  # seconds for a first bound on a side
RANGES_FIRST = 5e7  # pairs examined for a side in the first round that closes boxes
RANGES_GROWTH = 3.0  # growth of that work from round to round
RANGES_PART = 0.05  # share of the time of a proof for better weights
FRONT_STEPS = 20  # about how many points a front has unless a step is given
CERTIFICATE_PAIRS = 4_000_000  # most pairs that are recorded, at about 100 bytes each
CERTIFICATE_WORK = 5_000_000  # pairs examined between two checks of the clock
CERTIFICATE_HALVINGS = 12  # times that the bounds tried halve the distance from the trivial bound to the value

# --- Cards and risk scores: sets of columns with whole points --------------------------------------------------------

MOST_DIRECTIONS = 100_000  # whole weights of the columns of a set, beyond which boxes are better
FEW_VALUES = 8  # values of a column, for which bounds are close
MOST_OPEN_WEIGHTS = 60_000  # weights of all sets with two columns of more values, beyond which boxes are better
POINTS_PAUSE = 0.02  # seconds between two looks at limits and interrupts
RISK_WORDS_PER_SECOND = 2e8  # words and patterns looked at to bound sets, on a slow machine
MOST_RISK_SETS = 20_000  # sets to search one by one; SCIP takes over where there are more
RISK_WORDS = 1 << 21  # most words that are looked at together
RISK_COLUMNS = 16  # most columns the same way
RISK_TOTALS = 2_000_000  # most totals that are looked at together
CANDIDATES = 12  # columns of the largest slopes that are tried in place of another
ROUNDED = 8  # columns whose points are rounded in all ways
NEWTON_STEPS = 30  # steps of a continuous fit
STEP_HALVINGS = 12  # most halvings of such a step
LEAST_DECREASE = 1e-10  # of the loss, in such a step that is not the last
RIDGE = 1e-6  # on the diagonal of the Hessian, for columns that are constant or equal
