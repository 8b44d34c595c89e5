"""A test that commits leaves nothing behind for the next one, although rows are deleted and tables are not truncated."""

import pytest
from django.contrib.contenttypes.models import ContentType
from django.db import IntegrityError

from tests.cast import make_cast
from tests.flushing import KEPT, delete_rows, filled
from tests.webapp.experiments.conftest import make_version
from webapp.datasets.models import DatasetVersion

pytestmark = pytest.mark.django_db(transaction=True)


def test_rows_that_triggers_protect_go_too_and_the_triggers_hold_afterwards():
    make_version(make_cast().owner)
    types = set(ContentType.objects.values_list("pk", flat=True))
    assert {"datasets_versionmember", "accounts_membership"} <= set(filled()) - KEPT
    delete_rows()
    assert set(filled()) <= KEPT
    assert set(ContentType.objects.values_list("pk", flat=True)) == types

    version = make_version(make_cast().owner)
    with pytest.raises(IntegrityError, match="cannot change"):
        DatasetVersion.objects.filter(pk=version.pk).update(digest="e" * 64)
