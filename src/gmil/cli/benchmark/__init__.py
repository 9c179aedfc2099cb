"""``gmil benchmark``: many methods on many sets, and the leaderboard of them."""
