"""Random streams."""

from nnxkit._rng_scopes import SplitBackups as SplitBackups
from nnxkit._rng_scopes import StreamBackup as StreamBackup
from nnxkit._rng_scopes import fork_rngs as fork_rngs
from nnxkit._rng_scopes import restore_rngs as restore_rngs
from nnxkit._rng_scopes import split_rngs as split_rngs
from nnxkit._rng_scopes import with_rngs as with_rngs
from nnxkit._rngs import RngCount as RngCount
from nnxkit._rngs import RngKey as RngKey
from nnxkit._rngs import Rngs as Rngs
from nnxkit._rngs import RngState as RngState
from nnxkit._rngs import RngStream as RngStream
from nnxkit._rngs import reseed as reseed
