"""A store on PostgreSQL."""
from sightline.engine.store import Store
def test_x(store_url):
    s=Store.open(store_url); assert s.runs()==[]; s.close()
