class RaggedTensor: pass
class RaggedTensorSpec: pass
