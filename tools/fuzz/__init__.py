"""Mutated model and data files, which gmil must refuse cleanly.

``make fuzz`` (or ``python -m tools.fuzz``) mutates files that gmil wrote, loads them in child processes, predicts, and
prints how many were refused, changed nothing, changed decisions, or did harm. A case is known by the seed of the run,
its group and its number: ``python -m tools.fuzz --case 0:models:17`` makes the same bytes again and shows what happens.

Groups
------
models : files of every registered class, of 0.1.0 (``tests/model_files``) and written by this gmil. Every second case
    computes the checksum anew and keeps the format version, so that the validation behind them is tried.
data : files and folders of every format that gmil reads.
mat : single bytes of one small ``.mat`` file, one after the other.

Outcomes
--------
same, refused, changed : fine. A change is fine where no valid checksum forbids it: whoever writes a file may write any
    model.
large : a data file that takes more memory than the bound; compressed data may do so.
unnoticed : decisions or values changed although a checksum is stale. Bad.
not finite : decisions that are not numbers. Bad.
raw : an exception that is not one of gmil's own. Bad.
crash, hang : the child process died, or did not answer in time. Bad.
memory : more than 20 times the file and 200 MB, or more memory asked for than the child may have. Bad.
code : a process, a socket, a pickle, a file written elsewhere, or an imported module that the file named. Bad.
"""
