"""Defines the tasks that may still be given to a person: one definition for the queue that gives them and for the pages that count them."""

# `OFFSET 0` keeps the planner from turning the look-up of one row into a join over all assignments of this person
# The arm of a study with fewer people comes first, chosen at random if they are equal. So each arm of a pair gets
# its people, a person gets both arms over the pairs, and no statement takes a task and its twin
NOT_MINE = """
    NOT EXISTS (SELECT 1 FROM annotation_assignment m
                WHERE m.task_id = t.id AND m.user_id = %(user)s AND m.state <> 'returned' OFFSET 0)
    AND (NOT t.subject ? 'arm' OR NOT EXISTS (
        SELECT 1 FROM annotation_task o
        WHERE o.project_id = t.project_id AND o.example_id = t.example_id AND o.id <> t.id
            AND (EXISTS (SELECT 1 FROM annotation_assignment m WHERE m.task_id = o.id AND m.user_id = %(user)s)
                 OR o.open AND (o.taken, hashint8extended(o.id, %(user)s), o.id)
                             < (t.taken, hashint8extended(t.id, %(user)s), t.id)
                    AND NOT EXISTS (SELECT 1 FROM annotation_assignment m
                                    WHERE m.task_id = t.id AND m.user_id = %(user)s))))
"""
"""A condition on a row `t` of tasks; `%(user)s` is the person."""
