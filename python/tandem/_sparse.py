class SparseTensor: pass
class SparseTensorSpec: pass
