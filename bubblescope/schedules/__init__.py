"""Pipeline schedules as data: orders, closed forms, replay, detection."""
