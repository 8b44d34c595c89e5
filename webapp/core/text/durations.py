"""Lengths of time in words."""


def duration(seconds: float | None) -> str:
    """Seconds as people say them: 48 s, 4:12 min, 2 h 05 min; a dash if it is not known."""
    if seconds is None:
        return "–"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02d} min"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
